// `PORT` or `unix:PATH`, as commands take what a tunnel leads to.
import type { LocalSpec } from '@tunnel/client';
import { pathFrom } from '@tunnel/runtime';
import { InvalidArgumentError } from 'commander';
import { portNumber } from './flags.ts';
import type { Io } from './io.ts';

/** A number is a port, a text the path of a Unix socket as it was given. */
export type TypedTarget = number | string;

const UNIX = 'unix:';

export const LOCAL_TARGET_HELP = 'port of the local service, or unix:PATH of its socket';

export const typedTarget = (text: string): TypedTarget => {
  if (text.length > UNIX.length && text.startsWith(UNIX)) return text.slice(UNIX.length);
  try {
    return portNumber(text);
  } catch {
    throw new InvalidArgumentError('It must be a whole number from 1 to 65535, or unix: and the path of a socket.');
  }
};

/** `host`: as the flag says; beside a socket the client refuses it. */
export const localSpecOf = (
  target: TypedTarget,
  host: string | undefined,
  io: Pick<Io, 'cwd' | 'home'>,
): LocalSpec => ({
  ...(host === undefined ? {} : { localHost: host }),
  ...(typeof target === 'number' ? { localPort: target } : { localSocket: pathFrom(io.cwd, target, io.home) }),
});

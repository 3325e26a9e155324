// `PORT` or `unix:PATH`, as commands take what a tunnel leads to.
import type { LocalSpec } from '@tunnel/client';
import { pathFrom } from '@tunnel/runtime';
import { InvalidArgumentError } from 'commander';
import { portNumber } from './flags.ts';
import type { Io } from './io.ts';

/** A number is a port, a text the path of a Unix socket as it was given. */
export type LocalPlace = number | string;

const UNIX = 'unix:';

export const LOCAL_PLACE_HELP = 'port of the local service, or unix:PATH of its socket';

export const localPlace = (text: string): LocalPlace => {
  if (text.length > UNIX.length && text.startsWith(UNIX)) return text.slice(UNIX.length);
  try {
    return portNumber(text);
  } catch {
    throw new InvalidArgumentError('It must be a whole number from 1 to 65535, or unix: and the path of a socket.');
  }
};

/** `host`: as the flag says; beside a socket the client refuses it. */
export const localSpecOf = (place: LocalPlace, host: string | undefined, io: Pick<Io, 'cwd' | 'home'>): LocalSpec => ({
  ...(host === undefined ? {} : { localHost: host }),
  ...(typeof place === 'number' ? { localPort: place } : { localSocket: pathFrom(io.cwd, place, io.home) }),
});

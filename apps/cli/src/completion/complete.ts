// `tunnel __complete KIND`: prints words that depend on files of this computer, one per line, for the scripts of `tunnel completion`.
// Prints no errors, because errors would appear in the middle of the line that the user types.

import { tunnelNames } from '@tunnel/config/client';
import { pathFrom } from '@tunnel/config/layers';
import { isProcessAlive } from '@tunnel/runtime';
import { findSockets } from '../agent/socket-folders.ts';
import type { Io } from '../io/io.ts';

type CompleteIo = Pick<Io, 'env' | 'home' | 'cwd' | 'stdout'>;

const WORDS: Readonly<Record<string, (io: CompleteIo, config: string) => readonly string[]>> = {
  /** Names of the tunnels in config.yml, or in the file given by --config. */
  names: (io, config) => tunnelNames(pathFrom(io.cwd, config === '' ? '~/.tunnel/config.yml' : config, io.home)),
  /** Pids of running clients, from the names of their sockets. */
  clients: (io) =>
    findSockets(io)
      .filter(({ pid }) => isProcessAlive(pid))
      .map(({ pid }) => String(pid)),
};

/** Matches words suitable for completion, without line breaks and control characters. */
const OFFERED = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u;

export const complete = ([kind = '', config = '']: readonly string[], io: CompleteIo): void => {
  const words = Object.hasOwn(WORDS, kind) ? (WORDS[kind]?.(io, config) ?? []) : [];
  for (const word of words) if (OFFERED.test(word)) io.stdout.write(`${word}\n`);
};

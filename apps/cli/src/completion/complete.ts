// `tunnel __complete KIND`: the words that only this moment knows, one a line, for the scripts of `tunnel completion`. Reads files alone,
// and says nothing when there is nothing to say: whoever typed is in the middle of a line.

import { tunnelNames } from '@tunnel/config/client';
import { pathFrom } from '@tunnel/config/layers';
import { isProcessAlive } from '@tunnel/runtime';
import { findSockets } from '../agent/socket-folders.ts';
import type { Io } from '../io/io.ts';

type CompleteIo = Pick<Io, 'env' | 'home' | 'cwd' | 'stdout'>;

const WORDS: Readonly<Record<string, (io: CompleteIo, config: string) => readonly string[]>> = {
  /** Of the tunnels in config.yml, or in the file that --config names on that line. */
  names: (io, config) => tunnelNames(pathFrom(io.cwd, config === '' ? '~/.tunnel/config.yml' : config, io.home)),
  /** Pids of running clients, by their sockets: none is asked. */
  clients: (io) =>
    findSockets(io)
      .filter(({ pid }) => isProcessAlive(pid))
      .map(({ pid }) => String(pid)),
};

/** A name that would end its line or move a cursor is not. */
const OFFERED = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u;

export const complete = ([kind = '', config = '']: readonly string[], io: CompleteIo): void => {
  const words = Object.hasOwn(WORDS, kind) ? (WORDS[kind]?.(io, config) ?? []) : [];
  for (const word of words) if (OFFERED.test(word)) io.stdout.write(`${word}\n`);
};

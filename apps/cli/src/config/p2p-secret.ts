// Where commands find the secret of a p2p tunnel: a file, a variable, or TUNNEL_P2P_SECRET. No flag takes it itself: a process list shows flags.
import { Fault } from '@tunnel/errors';
import { pathFrom, readSecretText, Secret } from '@tunnel/runtime';
import type { Command } from 'commander';
import type { Io } from '../io/io.ts';

export interface SecretFlags {
  readonly secretFile?: string;
  readonly secretEnv?: string;
}

const VARIABLE = 'TUNNEL_P2P_SECRET';

export const addSecretFlags = (command: Command): Command =>
  command
    .option('--secret-file <file>', 'File with the secret that both ends share')
    .option('--secret-env <variable>', `Variable with that secret (default: ${VARIABLE})`);

/** With a line break at its end, which whoever uses it leaves out. Throws a Fault. */
export const findSecret = ({ secretFile, secretEnv }: SecretFlags, io: Pick<Io, 'env' | 'cwd' | 'home'>): Secret => {
  if (secretFile !== undefined && secretEnv !== undefined) {
    throw new Fault('CLIENT_USAGE', { reason: 'use --secret-file or --secret-env, not both.' });
  }
  if (secretFile !== undefined) {
    const answer = readSecretText(pathFrom(io.cwd, secretFile, io.home));
    if ('secret' in answer) return answer.secret;
    throw new Fault('CLIENT_P2P_SECRET_FILE', { file: secretFile, reason: answer.reason });
  }
  const text = io.env[secretEnv ?? VARIABLE] ?? '';
  if (text !== '') return new Secret(text);
  if (secretEnv === undefined) throw new Fault('CLIENT_P2P_SECRET_MISSING');
  throw new Fault('CLIENT_USAGE', { reason: `the variable ${secretEnv} is not set (--secret-env).` });
};

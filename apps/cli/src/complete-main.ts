// The entry point of `tunnel __complete`, which prints words for shell completion. Loads no other part of the program.
import { homedir } from 'node:os';
import { complete } from './completion/complete.ts';

export const main = (args: readonly string[]): void => {
  // A shell may stop reading the completions early, which is not an error.
  process.stdout.on('error', () => {});
  complete(args.slice(1), { env: process.env, home: homedir(), cwd: process.cwd(), stdout: process.stdout });
};

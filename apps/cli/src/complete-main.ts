// The words that a shell asks for while somebody types: `tunnel __complete`, without the rest of the program.
import { homedir } from 'node:os';
import { complete } from './completion/complete.ts';

// A shell that no longer wants to know is no error of ours.
process.stdout.on('error', () => {});

complete(process.argv.slice(3), { env: process.env, home: homedir(), cwd: process.cwd(), stdout: process.stdout });

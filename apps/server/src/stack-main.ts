// `tunnel-server stack` as a bundle of its own: the parent runs as long as its stack, and holds nothing of what it runs.
import { stack } from './commands/stack-command.ts';
import { runProgram } from './program.ts';

await runProgram([stack]);

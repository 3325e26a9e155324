// Entry point of the separate bundle for `tunnel-server stack`. The supervising process runs as long as the stack, so its bundle excludes
// the code of the stack's parts.
import { stack } from './commands/stack-command.ts';
import { runProgram } from './program.ts';

await runProgram([stack]);

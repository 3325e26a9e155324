// Entry point of the separate bundle for `tunnel-server edge` and `platform`. In a bundle with all commands, the code of a part is in
// dozens of small files, and loading the files takes more time and memory.
import { edge, platform } from './commands/server-commands.ts';
import { runProgram } from './program.ts';

await runProgram([edge, platform]);

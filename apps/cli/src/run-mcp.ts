// `tunnel mcp` without the other commands, whose parts take longer to load than it may take to answer.
import { mcpCommand } from './commands/mcp.ts';
import type { ExitCode } from './exit-codes.ts';
import type { Io } from './io.ts';
import { runProgram } from './program.ts';

export const runMcp = (args: readonly string[], io: Io): Promise<ExitCode> =>
  runProgram(args, io, [['Models:', [mcpCommand]]]);

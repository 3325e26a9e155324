// `tunnel completion SHELL`: prints the script for a shell to complete commands, flags, and names of tunnels.
import { Argument, Command } from 'commander';
import type { CommandWords } from '../completion/command-words.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';

type Shell = 'bash' | 'zsh' | 'fish';

const SCRIPTS: Readonly<Record<Shell, () => Promise<(words: readonly CommandWords[]) => string>>> = {
  bash: async () => (await import('../completion/bash.ts')).bashScript,
  zsh: async () => (await import('../completion/zsh.ts')).zshScript,
  fish: async () => (await import('../completion/fish.ts')).fishScript,
};

const EXAMPLES = `
Examples:
  $ source <(tunnel completion bash)          # in ~/.bashrc
  $ source <(tunnel completion zsh)           # in ~/.zshrc, after compinit
  $ tunnel completion fish > ~/.config/fish/completions/tunnel.fish`;

/** Makes the program with every command, because the command that runs has only its own code loaded. */
type BuildProgram = (io: Io, finish: (code: ExitCode) => void) => Promise<Command>;

export const completionCommand =
  (buildProgram: BuildProgram) =>
  (io: Io, finish: (code: ExitCode) => void): Command =>
    new Command('completion')
      .description('Print a shell completion script')
      .addArgument(new Argument('<shell>', 'Shell to complete commands in').choices(Object.keys(SCRIPTS)))
      .addHelpText('after', EXAMPLES)
      .action(async (shell: Shell) => {
        const [{ commandWords }, script, program] = await Promise.all([
          import('../completion/command-words.ts'),
          SCRIPTS[shell](),
          buildProgram(io, finish),
        ]);
        io.stdout.write(script(commandWords(program)));
        finish(EXIT.endedAsAsked);
      });

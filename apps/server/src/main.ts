// The executable tunnel-server. Each command loads only the code that it needs, so that a part of a stack does not hold the code of other
// parts in memory.
import { checkConfig, edge, platform, simulator } from './commands/server-commands.ts';
import { stack } from './commands/stack-command.ts';
import { type MakeCommand, runProgram } from './program.ts';

const PARTS = new Set(['edge', 'platform']);

const inGroup =
  (heading: string, make: MakeCommand): MakeCommand =>
  (finish) =>
    make(finish).helpGroup(heading);

/** All commands of tunnel-server, in the order of the help text. */
const allCommands = async (): Promise<readonly MakeCommand[]> => {
  const { admin } = await import('./commands/admin.ts');
  const { edgeCredential, migrate } = await import('./commands/database-commands.ts');
  const { oauthClient } = await import('./commands/oauth-client.ts');
  const { signingKeys } = await import('./commands/signing-keys.ts');
  const { alert } = await import('./commands/alert-command.ts');
  const { certificates } = await import('./commands/certificates.ts');
  const { downloads } = await import('./commands/downloads.ts');
  const groups: readonly (readonly [heading: string, commands: readonly MakeCommand[]])[] = [
    ['Run:', [stack, edge, platform, simulator]],
    ['Accounts and apps:', [admin, oauthClient]],
    ['Maintain:', [checkConfig, certificates, downloads, edgeCredential, signingKeys, migrate, alert]],
  ];
  return groups.flatMap(([heading, commands]) => commands.map((make) => inGroup(heading, make)));
};

await runProgram(PARTS.has(process.argv[2] ?? '') ? [edge, platform] : await allCommands());

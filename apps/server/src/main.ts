// The executable tunnel-server with all commands. The commands that run for long have separate bundles: bin/tunnel-server.mjs chooses them.
import { checkConfig, edge, platform, simulator } from './commands/server-commands.ts';
import { stack } from './commands/stack-command.ts';
import { type MakeCommand, runProgram } from './program.ts';

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
  const { backup } = await import('./commands/backup-command.ts');
  const { alert } = await import('./commands/alert-command.ts');
  const { certificates } = await import('./commands/certificates.ts');
  const { downloads } = await import('./commands/downloads.ts');
  const { health } = await import('./commands/health-command.ts');
  const { service } = await import('./commands/service-command.ts');
  const { setup } = await import('./commands/setup-command.ts');
  const groups: readonly (readonly [heading: string, commands: readonly MakeCommand[]])[] = [
    ['Run:', [stack, edge, platform, simulator]],
    ['Install:', [setup, service, health]],
    ['Accounts and apps:', [admin, oauthClient]],
    ['Maintain:', [checkConfig, backup, certificates, downloads, edgeCredential, signingKeys, migrate, alert]],
  ];
  return groups.flatMap(([heading, commands]) => commands.map((make) => inGroup(heading, make)));
};

/** Containers run the health check every few seconds, so it loads as little code as possible. */
const healthOnly = async (): Promise<readonly MakeCommand[]> => [(await import('./commands/health-command.ts')).health];

const [, , name = ''] = process.argv;
await runProgram(await (name === 'health' ? healthOnly() : allCommands()));

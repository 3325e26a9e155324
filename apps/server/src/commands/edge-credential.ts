// `tunnel-server edge-credential`: which edges may connect to the platform.
import { createCredential, type ListedEdge, listCredentials, revokeCredential } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { EXIT_OK } from '../problem-report.ts';
import { withDatabase } from '../with-database.ts';
import { consoleOperator } from './console-operator.ts';
import { loadConfig, type ServerFlags, serverCommand } from './server-flags.ts';
import { tableText } from './table-text.ts';

interface Flags extends ServerFlags {
  readonly json?: boolean;
}

const subcommand = (name: string, description: string, example: string): Command =>
  serverCommand(name, description)
    .option('--json', 'one JSON object on standard output')
    .addHelpText('after', `\nExample:\n  ${example}`);

export const edgeCredential = (finish: (code: number) => void): Command => {
  const command = new Command('edge-credential').description('Create, list or revoke the credentials of edges.');
  const say = (flags: Flags, text: string, json: object): void => {
    process.stdout.write(`${flags.json === true ? JSON.stringify(json) : text}\n`);
    finish(EXIT_OK);
  };
  const open = <T>(flags: Flags, act: Parameters<typeof withDatabase<T>>[2]): Promise<T> =>
    withDatabase(loadConfig(flags, process.env), { prepared: true }, act);

  command
    .addCommand(
      subcommand(
        'create',
        'Let one more edge in.',
        'tunnel-server edge-credential create fra-1 > /etc/tunnel/credential',
      )
        .argument('<name>', 'name of the edge, for people')
        .action(async (name: string, flags: Flags) => {
          const { edgeId, credential } = await open(flags, ({ db }) =>
            createCredential({ db, clock: systemClock }, consoleOperator(), name),
          );
          process.stderr.write(
            'Shown once. Put it into a file and name that in `[server] platform_credential_file`.\n',
          );
          say(flags, credential.reveal(), { edge_id: edgeId, name, credential: credential.reveal() });
        }),
    )
    .addCommand(
      subcommand('list', 'The edges that were let in.', 'tunnel-server edge-credential list').action(
        async (flags: Flags) => {
          const edges = await open(flags, ({ db }) => listCredentials({ db }));
          say(flags, edgesText(edges), edges);
        },
      ),
    )
    .addCommand(
      subcommand('revoke', 'Shut an edge out.', 'tunnel-server edge-credential revoke fra-1')
        .argument('<edge>', 'its name or id')
        .action(async (edge: string, flags: Flags) => {
          const revoked = await open(flags, ({ db }) =>
            revokeCredential({ db, clock: systemClock }, consoleOperator(), edge),
          );
          say(flags, `revoked: ${revoked.name} (${revoked.edgeId})`, revoked);
        }),
    );
  return command;
};

const edgesText = (edges: readonly ListedEdge[]): string =>
  edges.length === 0
    ? 'no edges yet: tunnel-server edge-credential create <name>'
    : tableText(
        ['NAME', 'REGION', 'STATUS', 'LAST HEARD', 'ID'],
        edges.map(({ name, regionId, revokedAt, lastHeartbeatAt, id }) => [
          name,
          regionId ?? '-',
          revokedAt === null ? 'active' : 'revoked',
          lastHeartbeatAt?.toISOString() ?? 'never',
          id,
        ]),
      );

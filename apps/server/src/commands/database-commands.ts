// Commands that use the database, with or without a running server: `migrate` and `edge-credential`. Also the database access for other
// commands.
import { userInfo } from 'node:os';
import { type ServerConfig } from '@tunnel/config/server';
import {
  migrate as applyMigrations,
  checkSchema,
  createCredential,
  Database,
  type ListedEdge,
  listCredentials,
  migratePatiently,
  type OperatorActor,
  revokeCredential,
  type SchemaCheck,
} from '@tunnel/platform';
import { createLogger, type Secret, systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { VERSION } from '../bundle.ts';
import { openDataDir } from '../data-dir/data-dir.ts';
import { embeddedUrl } from '../embedded-postgres/connection.ts';
import { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import { JSON_OPTION, type JsonFlags, loadConfig, serverCommand, tableText } from './shared.ts';

interface MigrateFlags extends JsonFlags {
  readonly check?: boolean;
}

export const migrate = (finish: (code: number) => void): Command =>
  serverCommand('migrate', 'Run database migrations')
    .option('--check', 'Only check; exit with 1 if migrations are pending')
    .option(...JSON_OPTION)
    .addHelpText('after', '\nExample:\n  $ tunnel-server migrate --config server.toml --check')
    .action(async (flags: MigrateFlags) => {
      const config = loadConfig(flags, process.env);
      const say = sayTo(finish);
      const version = { version: VERSION };
      const access = { prepared: false, patient: true };
      if (flags.check === true) {
        const check = await withDatabase(config, access, ({ db }) => checkSchema(db, version));
        say(flags, checkText(check), checkJson(check));
        if (check.pending.length > 0) finish(EXIT_UNEXPECTED);
      } else {
        const { applied } = await withDatabase(config, access, ({ db }) => applyMigrations(db, version));
        say(flags, appliedText(applied), { applied });
      }
    });

const checkText = ({ pending, newer }: SchemaCheck): string => {
  if (pending.length > 0)
    return [
      `pending: ${pending.length}`,
      tableText(
        ['MIGRATION', 'LONG LOCKS', 'ALLOWS'],
        pending.map(({ name, longLocks, oldestVersion }) => [
          name,
          longLocks.length === 0 ? 'none' : longLocks.join(' '),
          `${oldestVersion} and newer`,
        ]),
      ),
    ].join('\n');
  const beyond =
    newer.length === 0 ? '' : `; migrations of a newer version allow version ${VERSION}: ${newer.join(', ')}`;
  return `ok: the database is up to date${beyond}`;
};

const checkJson = ({ pending, newer }: SchemaCheck): object => ({
  missing: pending.map(({ name }) => name),
  pending: pending.map(({ name, longLocks, oldestVersion }) => ({
    name,
    long_locks: longLocks,
    oldest_version: oldestVersion,
  })),
  newer,
});

const appliedText = (applied: readonly string[]): string =>
  applied.length === 0 ? 'ok: the database was already up to date' : `applied: ${applied.join(', ')}`;

// `tunnel-server edge-credential`: manages the edges that can connect to the platform.

export const edgeCredential = (finish: (code: number) => void): Command => {
  const command = new Command('edge-credential').description('Create, list and revoke edge credentials');
  const say = sayTo(finish);

  command
    .addCommand(
      subcommand('create', 'Create a credential for an edge', 'edge-credential create fra-1 > /etc/tunnel/credential')
        .argument('<name>', 'Name of the edge')
        .action(async (name: string, flags: JsonFlags) => {
          const { edgeId, credential } = await open(flags, ({ db }) =>
            createCredential({ db, clock: systemClock }, consoleOperator(), name),
          );
          process.stderr.write(
            'The credential is shown only once. Save it to a file, and set `[server] platform_credential_file` to that file.\n',
          );
          say(flags, credential.reveal(), { edge_id: edgeId, name, credential: credential.reveal() });
        }),
    )
    .addCommand(
      subcommand('list', 'List edges and their credentials', 'edge-credential list').action(
        async (flags: JsonFlags) => {
          const edges = await open(flags, ({ db }) => listCredentials({ db }));
          say(flags, edgesText(edges), edges);
        },
      ),
    )
    .addCommand(
      subcommand('revoke', "Revoke an edge's credential", 'edge-credential revoke fra-1')
        .argument('<edge>', 'Name or id of the edge')
        .action(async (edge: string, flags: JsonFlags) => {
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
        ['NAME', 'REGION', 'STATUS', 'LAST SEEN', 'ID'],
        edges.map(({ name, regionId, revokedAt, lastHeartbeatAt, id }) => [
          name,
          regionId ?? '-',
          revokedAt === null ? 'active' : 'revoked',
          lastHeartbeatAt?.toISOString() ?? 'never',
          id,
        ]),
      );

export const subcommand = (name: string, description: string, example: string): Command =>
  serverCommand(name, description)
    .option(...JSON_OPTION)
    .addHelpText('after', `\nExample:\n  $ tunnel-server ${example}`);

export const sayTo =
  (finish: (code: number) => void) =>
  (flags: JsonFlags, text: string, json: object): void => {
    process.stdout.write(`${flags.json === true ? JSON.stringify(json) : text}\n`);
    finish(EXIT_OK);
  };

/** Opens the configured database with up-to-date tables, and calls `act` with the database and the configuration. */
export const open = <T>(
  flags: JsonFlags,
  act: (database: Database, config: ServerConfig) => Promise<T>,
): Promise<T> => {
  const config = loadConfig(flags, process.env);
  return withDatabase(config, { prepared: true }, (database) => act(database, config));
};

/** The operator at the console, under the name used in the audit log. */
export const consoleOperator = (): OperatorActor => ({ kind: 'operator', name: nameOf() });

const nameOf = (): string => {
  try {
    return userInfo().username;
  } catch {
    // The user has no entry in the password file, as is common in containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
};

const logger = createLogger({ level: 'warn', format: 'human', stream: process.stderr });

/**
 * Opens the database for a command: the configured database, the embedded database of a running server, or the embedded database started
 * for the duration of the command.
 * With `prepared`, pending migrations run first, and a database that a newer version has made unusable is rejected. With `patient`,
 * statements have no time limit. Throws a fault if no database is available.
 */
export const withDatabase = async <T>(
  config: ServerConfig,
  { prepared, patient = false }: { readonly prepared: boolean; readonly patient?: boolean },
  act: (database: Database) => Promise<T>,
): Promise<T> => {
  const { url, stop } = await findDatabase(config);
  const database = new Database({ url, logger, connections: 2, patient });
  try {
    const version = { version: VERSION };
    if (prepared && (await checkSchema(database.db, version)).pending.length > 0)
      await migratePatiently({ url, logger }, version);
    return await act(database);
  } finally {
    await database.close();
    await stop();
  }
};

const findDatabase = async (config: ServerConfig): Promise<{ url: Secret; stop: () => Promise<void> }> => {
  const stop = async (): Promise<void> => {};
  if (config.database.url.reveal() !== '') return { url: config.database.url, stop };
  const dataDir = await openDataDir(config.data_dir);
  const running = embeddedUrl(dataDir);
  if (running !== null) return { url: running, stop };
  const postgres = new EmbeddedPostgres({ dataDir, logger, clock: systemClock });
  const { url } = await postgres.start();
  return { url, stop: () => postgres.stop() };
};

// `tunnel-server migrate`: brings the tables up to date, or says which steps are missing.
import { migrate as applyMigrations, pendingMigrations } from '@tunnel/platform';
import type { Command } from 'commander';
import { EXIT_OK, EXIT_UNEXPECTED } from '../problem-report.ts';
import { withDatabase } from '../with-database.ts';
import { loadConfig, type ServerFlags, serverCommand } from './server-flags.ts';

interface MigrateFlags extends ServerFlags {
  readonly check?: boolean;
  readonly json?: boolean;
}

export const migrate = (finish: (code: number) => void): Command =>
  serverCommand('migrate', 'Bring the tables of the database up to date.')
    .option('--check', 'change nothing; end with 1 when steps are missing')
    .option('--json', 'one JSON object on standard output')
    .addHelpText('after', '\nExample:\n  tunnel-server migrate --config server.toml --check')
    .action(async (flags: MigrateFlags) => {
      const isCheck = flags.check === true;
      const config = loadConfig(flags, process.env);
      const steps = await withDatabase(config, { prepared: false, patient: true }, ({ db }) =>
        isCheck ? pendingMigrations(db) : applyMigrations(db),
      );
      const text = isCheck ? checkText(steps) : appliedText(steps);
      process.stdout.write(
        `${flags.json === true ? JSON.stringify(isCheck ? { missing: steps } : { applied: steps }) : text}\n`,
      );
      finish(isCheck && steps.length > 0 ? EXIT_UNEXPECTED : EXIT_OK);
    });

const checkText = (missing: readonly string[]): string =>
  missing.length === 0 ? 'ok: the tables are up to date' : `missing: ${missing.join(', ')}`;

const appliedText = (applied: readonly string[]): string =>
  applied.length === 0 ? 'ok: the tables were up to date' : `applied: ${applied.join(', ')}`;

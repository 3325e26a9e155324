// The usage trial: a server with the rows of a single account and the cost of its queries, and then the same with the rows of all other
// accounts.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Database } from '../../../../apps/platform/src/db/database.ts';
import { migrate } from '../../../../apps/platform/src/db/migrate.ts';
import { onServer, urlOf } from '../../../../apps/platform/src/db/test-database.fixture.ts';
import { EmbeddedPostgres } from '../../../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { createLogger, Secret, systemClock } from '../../../../packages/runtime/src/index.ts';
import { openToAll, superuserUrl } from '../../../superuser.fixture.ts';
import { askAll, QUESTIONS } from './usage-questions.mjs';
import { addAccounts, addDays, addTunnels } from './usage-rows.mjs';

/** Maximum database time for the queries of each visit to the usage page. */
const LIMIT_MS = 20;
/** Maximum additional pages of 8 KiB because of other accounts' rows: some index levels. */
const MORE_PAGES = 25;

const logger = createLogger({ format: 'human', level: 'silent' });

async function openServer() {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return { url: new Secret(given), close: async () => {} };
  const dataDir = mkdtempSync(join(tmpdir(), 'tunnel-usage-'));
  // Settings without durability, because the data is deleted afterwards, and memory like on a small machine.
  const settings = {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    maintenance_work_mem: '512MB',
    max_wal_size: '4GB',
    hba_file: openToAll(dataDir),
  };
  const postgres = new EmbeddedPostgres({ dataDir, logger, clock: systemClock, settings });
  const { socketFolder } = await postgres.start();
  return {
    url: superuserUrl(socketFolder),
    close: async () => {
      await postgres.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function withDatabase(work) {
  const server = await openServer();
  const name = `usage_${randomBytes(6).toString('hex')}`;
  try {
    await onServer(server.url, `create database ${name}`);
    const database = new Database({ url: urlOf(server.url, name), logger, connections: 2 });
    try {
      await database.pool.query('select 1');
      await migrate(database.db, { version: '0.0.0-dev' });
      return await work(database);
    } finally {
      await database.close();
      await onServer(server.url, `drop database if exists ${name} with (force)`);
    }
  } finally {
    await server.close();
  }
}

const show = (say, costs) => {
  for (const { name, ms, pages } of costs) say(`${name.padEnd(36)} ${ms.toFixed(2).padStart(9)} ms ${pages} pages`);
};

export const tryUsage = ({ values, say, check }) =>
  withDatabase(async (database) => {
    const { rows, all, accounts } = values;
    const [account, ...others] = await addAccounts(database.pool, accounts);
    await addTunnels(database.pool, [account], rows);
    await addDays(database.pool, [account], 730);
    say(`${rows} tunnels of one account`);
    const alone = await askAll(database, account);
    show(say, alone);

    await addTunnels(database.pool, others, Math.max(0, all - rows));
    await addDays(database.pool, others, 90);
    say(`${all} tunnels of ${accounts} accounts`);
    const amid = await askAll(database, account);
    show(say, amid);

    for (const [index, { name, plan, ms, pages, scans }] of amid.entries()) {
      say(`\n${name}\n${plan}\n`);
      check(scans.length === 0, `${name}: reads no large table whole${scans.map((table) => ` (${table})`).join('')}`);
      if (QUESTIONS[index].isDeep) continue;
      check(ms < LIMIT_MS, `${name}: ${ms.toFixed(2)} ms of database time, under ${LIMIT_MS}`);
      const before = alone[index].pages;
      check(pages <= before + MORE_PAGES, `${name}: ${pages} pages among all, ${before} alone`);
    }
    return `${all} rows, ${rows} of them of one account`;
  });

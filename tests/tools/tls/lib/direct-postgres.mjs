// A query of the npm driver over TLS from the first byte on, as sslnegotiation=direct has it: prints its result.
// usage: node direct-postgres.mjs PORT HOST CA
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../../apps/platform/package.json', import.meta.url));
const DRIVER = 'pg';
const { Client } = require(DRIVER);
const [port, servername, ca] = process.argv.slice(2);
const client = new Client({
  host: '127.0.0.1',
  port: Number(port),
  user: 'tester',
  database: 'postgres',
  sslnegotiation: 'direct',
  ssl: { ca: readFileSync(ca), servername },
  connectionTimeoutMillis: 20_000,
});
await client.connect();
const { rows } = await client.query(
  "select 6 * 7 as answer, count(*)::int as count, sum(length(repeat('x', 1000)))::int as sum from generate_series(1, 20000)",
);
process.stdout.write(`${Object.values(rows[0]).join('|')}\n`);
await client.end();

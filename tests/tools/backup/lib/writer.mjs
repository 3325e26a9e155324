// Writes a row every 10 ms, and remembers when each was written, so that a restore to a moment can be judged row by row.
import { setTimeout as pause } from 'node:timers/promises';
import { Database } from '../../../../apps/platform/src/db/database.ts';
import { ask, quiet } from './trial.mjs';

const EVERY_MS = 10;

export class Writer {
  /** Committed rows: number, the time before the insert, and the time after the commit. */
  rows = [];
  /** Why the last insert failed, for a run without any row. */
  problem = '';
  #isOver = false;
  #running;
  #urlOf;

  /** `urlOf` returns the URL of the database, or null while the database is down. */
  constructor(urlOf) {
    this.#urlOf = urlOf;
    this.#running = this.#run();
  }

  async #run() {
    let database;
    for (let n = 1; !this.#isOver; n += 1) {
      try {
        const url = this.#urlOf();
        if (url === null) throw new Error('no database');
        database ??= await open(url);
        const before = Date.now();
        await database.pool.query('insert into written values ($1::integer, repeat(md5($1::integer::text), 20))', [n]);
        const after = Date.now();
        this.rows.push({ n, before, after });
        await pause(Math.max(0, EVERY_MS - (after - before)));
      } catch (error) {
        this.problem = error.message;
        await database?.close();
        database = undefined;
        await pause(200);
      }
    }
    await database?.close();
  }

  async stop() {
    this.#isOver = true;
    await this.#running;
  }

  /** Compares the rows of a database that was restored to a moment. Returns what is wrong, or null. */
  async compare(url, moment, slackMs = 1000) {
    const numbers = String((await ask(url, "select string_agg(n::text, ' ') from written")) ?? '');
    const there = new Set(numbers.split(' ').map(Number));
    const missing = this.rows.filter(({ n, after }) => after < moment - slackMs && !there.has(n));
    const later = this.rows.filter(({ n, before }) => before > moment && there.has(n));
    if (missing.length > 0) return `${missing.length} rows from before the moment are missing, such as ${missing[0].n}`;
    return later.length > 0 ? `${later.length} rows from after the moment are there, such as ${later[0].n}` : null;
  }
}

async function open(url) {
  const database = new Database({ url, logger: quiet, connections: 1 });
  await database.pool.query('create table if not exists written (n integer primary key, filler text)');
  return database;
}

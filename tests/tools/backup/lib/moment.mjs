// A restore to a moment under load: rows, accounts, names, keys and usage.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../lib/until.mjs';
import { Traffic } from './traffic.mjs';
import { ask, BackupTrial, PATIENCE, readAll, withDatabase } from './trial.mjs';
import { Writer } from './writer.mjs';

/** Tables that only people change, never traffic. */
const OF_ACCOUNTS = /^(own_domains|certificates|plans|invites|oauth_clients|signing_keys)$/;

const identities = (url) =>
  ask(
    url,
    "select string_agg(u.email || ' ' || coalesce(u.password_hash, '') || ' ' || (select coalesce(string_agg(k.label || k.token_hash, ',' order by k.id), '') from api_keys k where k.user_id = u.id), e'\\n' order by u.email) from users u",
  );

const NAMES = "select string_agg(concat_ws(' ', id, kind, label, user_id, state), e'\\n' order by id) from names";

/** A certificate as the platform stores it. The server of the trial orders none, so the row stays as it is. */
const CERTIFICATE = (name) =>
  `insert into certificates (directory, names, has_wildcard, life, due_at) values ('http://localhost/directory', '${name}', false, '{}', now() + interval '60 days')`;

const stateOf = async (url) => ({
  identities: await identities(url),
  names: await ask(url, NAMES),
  ...(await readAll(url, (table) => OF_ACCOUNTS.test(table))),
});

export async function tryMoment({ check }) {
  const trial = await BackupTrial.open();
  try {
    const traffic = await Traffic.open(trial);
    const writer = new Writer(() => trial.url);
    const client = traffic.payer.client(trial.stack);
    await trial.nextBackup();
    await until('a first row', () => writer.rows.length > 10, PATIENCE);
    await client.reserve({ kind: 'subdomain', label: 'kept-name' });
    await ask(trial.url, CERTIFICATE('kept.example.com'));
    await traffic.served();
    await pause(3000);
    const before = await stateOf(trial.url);
    await pause(1500);
    const moment = Date.now();
    await pause(1500);
    const undone = await client.reserve({ kind: 'subdomain', label: 'undone-name' });
    await client.createKey({ label: 'undone' });
    await ask(trial.url, CERTIFICATE('undone.example.com'));
    await traffic.served();
    await pause(4000);
    check(undone.label === 'undone-name', `${writer.rows.length} rows written, ${traffic.visits} visits`);
    await traffic.pause();
    await writer.stop();
    await traffic.settled();
    await trial.waitForArchive();
    const time = new Date(moment).toISOString();
    await trial.stack.stop();

    const restored = `${trial.dataDir}-restored`;
    const { code, stdout, stderr } = await trial.restore(restored, '--time', time);
    check(
      code === 0 && stdout.startsWith('restored to '),
      `restore --time ${time}: ${stdout.split('\n')[0]} ${stderr}`,
    );
    trial.replaceBy(restored);
    rmSync(join(trial.dataDir, 'edge-journal'), { recursive: true, force: true });
    cpSync(join(`${trial.dataDir}-old`, 'edge-journal'), join(trial.dataDir, 'edge-journal'), { recursive: true });
    await trial.stack.start();
    const wrong = await writer.compare(trial.url, moment);
    check(wrong === null, `rows as at the moment: ${wrong ?? `${writer.rows.length} rows compared`}`);
    const after = await stateOf(trial.url);
    const changed = Object.keys(before).filter((name) => before[name] !== after[name]);
    check(changed.length === 0, `accounts, keys, names and certificates as at the moment ${changed}`);
    await traffic.payer.client(trial.stack).logIn({ email: traffic.payer.email, password: 'correct horse battery' });
    check(true, 'the account logs in');
    traffic.resume();
    await traffic.served();
    check(true, 'the client reconnected, and visitors are served');
    await traffic.pause();
    const charged = await traffic.settled();
    check(
      charged === traffic.carried,
      `charged ${charged} of ${traffic.carried} carried bytes, with the time after the moment`,
    );
    await tryAgain({ trial, writer, moment, check });
  } finally {
    await trial.close();
  }
}

/** The restored server archives a new timeline, and can be restored itself, also to the time before the first restore. */
async function tryAgain({ trial, writer, moment, check }) {
  await ask(trial.url, 'insert into written select n, n::text from generate_series(1000001, 1001000) n');
  await trial.waitForArchive();
  const sum = await readAll(trial.url, (table) => table === 'written');
  await trial.stack.stop();
  const again = `${trial.dataDir}-again`;
  const latest = await trial.restore(again);
  check(latest.code === 0, `restore of the new timeline ${latest.stderr}`);
  const found = await withDatabase(again, (url) => readAll(url, (table) => table === 'written'));
  check(found.written === sum.written, `the latest state of the new timeline: ${found.written}`);
  const past = `${trial.dataDir}-past`;
  const undo = await trial.restore(past, '--time', new Date(moment + 2000).toISOString());
  check(undo.code === 0, `restore to a moment that the first restore has undone ${undo.stderr}`);
  const rows = await withDatabase(past, (url) => writer.compare(url, moment + 2000));
  check(rows === null, `its rows: ${rows ?? 'as they were'}`);
}

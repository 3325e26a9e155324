// Backups in a row while rows are written and visitors use a tunnel. Each is verified, restored, and read completely.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../lib/until.mjs';
import { Traffic } from './traffic.mjs';
import { ask, BackupTrial, PATIENCE, readAll, withDatabase } from './trial.mjs';
import { Writer } from './writer.mjs';

export async function tryMany({ quick, say, check }) {
  const count = quick ? 3 : 20;
  const trial = await BackupTrial.open({ settings: `keep = ${count + 1}` });
  try {
    const traffic = await Traffic.open(trial);
    const writer = new Writer(() => trial.url);
    await until('rows', () => writer.rows.length > 50, PATIENCE);
    await trial.nextBackup();
    let rows = 0;
    const wrong = [];
    for (let turn = 1; turn <= count; turn += 1) {
      const before = Date.now();
      const name = await trial.must('create');
      const after = Date.now();
      const target = join(await trial.folder(), 'restored');
      // The folder of one backup alone, without the archive: the state is that of the backup's end.
      const from = join(trial.backups, 'base', name);
      const { code, stderr } = await trial.command([
        'restore',
        '--from',
        from,
        '--to',
        target,
        '--time',
        await endOf(trial, name),
      ]);
      if (code !== 0) {
        wrong.push(`${name}: ${stderr.trim()}`);
        continue;
      }
      const problem = await withDatabase(target, async (url) => {
        const tables = await readAll(url);
        rows = Number(tables.written.split(' ')[0]);
        const isWhole = (await ask(url, 'select count(*) = max(n) from written')) === true;
        const early = await writer.compare(url, before, 0);
        const late = writer.rows.some(({ n, before: at }) => at > after && n <= rows);
        // Rows after the beginning may be there; only missing rows from before it are wrong.
        if (early?.includes('missing')) return early;
        if (late) return 'rows from after the end of the backup are there';
        return isWhole ? null : 'a row between other rows is missing';
      });
      if (problem !== null) wrong.push(`${name}: ${problem}`);
      rmSync(target, { recursive: true, force: true });
      if (turn % 5 === 0) say(`${turn} backups`);
    }
    check(
      wrong.length === 0,
      `${count} backups in a row, each restored and read, ${rows} rows at the end ${wrong.join('; ')}`,
    );
    const verified = await trial.command(['verify']);
    check(verified.code === 0, `verify beside the running server ${verified.stderr}`);
    check(trial.unfinished.length === 0, 'nothing unfinished is left');
    await traffic.pause();
    await writer.stop();
  } finally {
    await trial.close();
  }
}

/** The time of a backup's end, with which a restore stops there although the archive has later rows. */
async function endOf(trial, name) {
  const listed = JSON.parse(await trial.must('list', '--json'));
  return listed.find((backup) => backup.name === name).at;
}

// Takes backups of a whole stack under load, restores each of them and reads every table, and restores moments of the archived log:
// npm run try:backup
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: npm run try:backup -- [--rounds N] [--moments N] [--megabytes N]
5 backups, 3 moments, and a database of 500 MB: about 5 minutes. --rounds 20 --megabytes 2000 is the full trial.`;

/** Longest response of the platform while a backup is taken. */
const SLOWEST_MS = 1000;
/** A commit confirmed this long before a restored moment is in the restore. */
const CERTAIN_MS = 1000;

const isWhole = (numbers) => numbers.every((n, index) => n === index + 1);

await runScript(
  {
    name: 'backups',
    usage: USAGE,
    options: { rounds: 5, moments: 3, megabytes: 500 },
    limitSecs: ({ rounds, moments, megabytes }) => 600 + (rounds + moments) * 120 + megabytes,
  },
  async ({ values: { rounds, moments, megabytes }, say, check }) => {
    const { BackupTrial } = await loadBundled(
      new URL('../../system/backup-trial.fixture.ts', import.meta.url),
      'backup-trial',
    );
    const trial = await BackupTrial.open();
    try {
      let good = 0;
      for (let round = 1; round <= rounds; round += 1) {
        const before = trial.rows.length;
        const { name, ms } = await trial.create();
        await trial.verify(name);
        const numbers = await trial.restore(name, null);
        if (isWhole(numbers) && numbers.length >= before) good += 1;
        say(`backup ${round}: ${Math.round(ms)} ms, ${numbers.length} rows restored, at least ${before} expected`);
      }
      check(good === rounds, `${good} of ${rounds} backups restore every row committed before them`);
      let exact = 0;
      for (let moment = 1; moment <= moments; moment += 1) {
        const at = Date.now();
        await trial.archived(at + 1000);
        const numbers = await trial.restore(null, at);
        const least = trial.rows.filter(({ doneAt }) => doneAt < at - CERTAIN_MS).length;
        const most = trial.rows.filter((row) => row.at <= at).length;
        if (isWhole(numbers) && numbers.length >= least && numbers.length <= most) exact += 1;
        say(`moment ${moment}: ${numbers.length} rows, ${least} to ${most} expected`);
      }
      check(
        exact === moments,
        `${exact} of ${moments} moments restore the rows committed before them, and no later row`,
      );
      await trial.fill(megabytes);
      const { slowestMs, memoryMb } = await trial.scheduled();
      check(slowestMs <= SLOWEST_MS, `slowest response while ${megabytes} MB are copied: ${Math.round(slowestMs)} ms`);
      check(memoryMb <= 100, `memory of the parent, which copies: ${Math.round(memoryMb)} MB`);
    } finally {
      await trial.close();
    }
    return `${rounds} backups and ${moments} moments restored, ${megabytes} MB copied`;
  },
);

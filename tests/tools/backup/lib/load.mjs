// Backups under load: each is restored and read completely, moments of the archived log are restored, and a large database is copied.
import { BackupTrial } from '../../../system/backup-trial.fixture.ts';

/** Longest response of the platform while a backup is taken. */
const SLOWEST_MS = 1000;
/** A commit confirmed this long before a restored moment is in the restore. */
const CERTAIN_MS = 1000;

/** How long responses are measured without a backup. */
const WITHOUT_MS = 10_000;

const isWhole = (numbers) => numbers.every((n, index) => n === index + 1);

export async function tryLoad({ quick, say, check }) {
  const { rounds, moments, megabytes } = quick
    ? { rounds: 3, moments: 1, megabytes: 300 }
    : { rounds: 20, moments: 3, megabytes: 2000 };
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
    check(exact === moments, `${exact} of ${moments} moments restore the rows committed before them, and no later row`);
    await trial.fill(megabytes);
    // A busy machine is slow also without a backup.
    const without = Math.round(await trial.slowestDuring(new Promise((resolve) => setTimeout(resolve, WITHOUT_MS))));
    say(`slowest response without a backup: ${without} ms`);
    const slowest = Math.round(await trial.slowestDuring(trial.create()));
    check(slowest <= SLOWEST_MS, `slowest response while ${megabytes} MB are copied: ${slowest} ms`);
    const memory = Math.round(trial.memoryMb());
    check(memory <= 100, `memory of the parent: ${memory} MB`);
  } finally {
    await trial.close();
  }
}

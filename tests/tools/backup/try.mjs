// Backups and restores of a real server, under load, with kills, damage and full disks: npm run try:backup
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const NAMES = ['load', 'moment', 'torn', 'kills', 'full', 'refused'];
const USAGE = `usage: npm run try:backup [-- [--quick] ROW…]
Runs servers as executables on loopback addresses. Without names, all rows run: an hour on two cores. --quick: fewer backups and kills, and
a smaller database.
  load     20 backups in a row, each restored and read; moments of the log; a database of 2 GB beside requests
  moment   restore to a moment under load: rows, accounts, keys, names, certificates, usage, and then a restore of the restored server
  torn     damaged backups and logs: verify and restore name the file
  kills    SIGKILL of the command, the server, its parent and the database in the middle of a backup
  full     full disks of the backups and of the log that waits for the archive; requires root
  refused  restores that must not write a byte, and a restore that is killed`;

const chosen = process.argv.slice(2).filter((arg) => !arg.startsWith('-'));
process.argv = process.argv.filter((arg) => !chosen.includes(arg));
const unknown = chosen.filter((name) => !NAMES.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`no row ${unknown.join(', ')}\n${USAGE}\n`);
  process.exit(2);
}

await runScript(
  { name: 'backups', usage: USAGE, options: { quick: false }, limitSecs: () => 5400 },
  async ({ values: { quick }, say, check }) => {
    const { ROWS } = await loadBundled(new URL('lib/rows.mjs', import.meta.url), 'backup-rows');
    const names = chosen.length === 0 ? NAMES : chosen;
    for (const name of names) {
      let wrong = 0;
      const checkRow = (isRight, what) => {
        if (!isRight) wrong += 1;
        check(isRight, `${name}: ${what}`);
      };
      try {
        await ROWS[name]({ quick, say, check: checkRow });
      } catch (error) {
        checkRow(false, error.stack.split('\n').slice(0, 4).join(' '));
      }
      say(`${wrong === 0 ? 'ok' : 'FAILED'}  ${name}`);
    }
    return names.join(', ');
  },
);

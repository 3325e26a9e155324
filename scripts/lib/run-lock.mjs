// Lock that allows one install or build at a time in a checkout, across processes. A run that was killed does not block later runs.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const HEARTBEAT_MS = 2_000;
// Age of a heartbeat after which the lock's holder counts as ended, even if its pid now belongs to a different program.
const STALE_AFTER_MS = 15_000;
const POLL_MS = 100;

/** Runs `work` while holding the lock `file`. Calls `onWait(pid)` once if another run holds the lock. */
export async function withRunLock(file, onWait, work) {
  mkdirSync(dirname(file), { recursive: true });
  let told = false;
  while (!take(file)) {
    const holder = readHolder(file);
    if (holder && isGone(file, holder)) removeStale(file, holder);
    else {
      if (holder && !told) onWait(holder.trim());
      told ||= holder !== undefined;
      await delay(POLL_MS);
    }
  }
  const heartbeat = setInterval(() => touch(file), HEARTBEAT_MS);
  const release = () => rmSync(file, { force: true });
  process.once('exit', release);
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    process.off('exit', release);
    release();
  }
}

function take(file) {
  try {
    writeFileSync(file, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function readHolder(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function isGone(file, holder) {
  try {
    if (Date.now() - statSync(file).mtimeMs > STALE_AFTER_MS) return true;
    process.kill(Number(holder), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

/** Removes a stale lock. Renames the file before deleting it: if a live run has taken the lock in between, the file is put back. */
function removeStale(file, holder) {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
    if (readHolder(aside) !== holder) linkSync(aside, file);
  } catch {
    // Another run was faster. The caller's loop checks the lock again.
  }
  rmSync(aside, { force: true });
}

function touch(file) {
  try {
    const now = new Date();
    utimesSync(file, now, now);
  } catch {
    // The lock file was deleted by hand. The work continues.
  }
}

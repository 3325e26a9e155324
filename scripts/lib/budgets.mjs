// How long each step of the checks may take, and what is said when one takes longer.

/** A step may exceed its budget by this factor before it fails: times differ from run to run. */
const TOLERANCE = 4 / 3;
/** A machine of whose processor others take more than this share is busy: times measured on it prove nothing. */
const BUSY_SHARE = 0.1;

/**
 * Judges the time of one step, or of all of them: `isSum`, which is only reported, because each step has been judged by then. `othersShare` is the share of the processor that other programs took meanwhile, or null if unknown.
 * Returns 'ok', 'over' (the budget, but tolerated), 'busy' (too slow, on a machine that was busy or may have been), or 'failed'.
 */
export function judgeTime({ seconds, budgetSeconds, othersShare, isSum = false }) {
  if (budgetSeconds === undefined || seconds <= budgetSeconds) return 'ok';
  if (isSum || seconds <= budgetSeconds * TOLERANCE) return 'over';
  return othersShare === null || othersShare > BUSY_SHARE ? 'busy' : 'failed';
}

const REMARKS = {
  ok: () => '',
  over: () => 'over its budget',
  busy: (share) =>
    share === null
      ? 'too slow, if the machine was not busy'
      : `too slow, but ${percent(share)} of the processor was busy elsewhere`,
  failed: () => 'FAILED: over its budget by more than a third',
};

const percent = (share) => `${Math.round(100 * share)} %`;
const whole = (seconds) => `${Math.round(seconds)} s`;

/** The lines of a table: each step with its time, its budget and, where it exceeds it, a remark. */
function budgetTable(rows) {
  const cells = rows.map(({ name, seconds, budgetSeconds, othersShare, isSum }) => [
    name,
    whole(seconds),
    budgetSeconds === undefined ? '' : whole(budgetSeconds),
    REMARKS[judgeTime({ seconds, budgetSeconds, othersShare, isSum })](othersShare),
  ]);
  const table = [['step', 'time', 'budget', ''], ...cells];
  const width = (column) => Math.max(...table.map((row) => row[column].length));
  const [first, second, third] = [0, 1, 2].map(width);
  return table.map(([name, time, budget, remark]) =>
    `${name.padEnd(first)}  ${time.padStart(second)}  ${budget.padStart(third)}  ${remark}`.trimEnd(),
  );
}

/** What a run says at its end, a table and the count, in which each time that is too long is a failure; and its exit code. */
export function endOfRun({ times, passed, failed }) {
  const failures = failed + times.filter((time) => judgeTime(time) === 'failed').length;
  const text = `\n${budgetTable(times).join('\n')}\n\n${passed} passed, ${failures} failed\n`;
  return { text, code: failures > 0 ? 1 : 0 };
}

// Time budgets for the steps of the checks, and the report of exceeded budgets.

/** Factor by which a step may exceed its budget before the step fails, because times vary between runs. */
const TOLERANCE = 4 / 3;
/** Share of the processor used by other programs above which a machine counts as busy. Times measured on a busy machine prove nothing. */
const BUSY_SHARE = 0.1;

/**
 * Judges the time of one step, or of all steps together if `isSum` is set. An exceeded sum is only reported, because every step has
 * already been judged. `othersShare` is the share of the processor used by other programs meanwhile, or null if unknown.
 * Returns 'ok', 'over' (over budget, but tolerated), 'busy' (too slow, on a machine that was or may have been busy), or 'failed'.
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

/** Makes the lines of a table with the time, the budget and, if the budget is exceeded, a remark for every step. */
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

/** Makes the final report of a run, a table and the counts, and its exit code. Every step with an excessive time counts as a failure. */
export function endOfRun({ times, passed, failed }) {
  const failures = failed + times.filter((time) => judgeTime(time) === 'failed').length;
  const text = `\n${budgetTable(times).join('\n')}\n\n${passed} passed, ${failures} failed\n`;
  return { text, code: failures > 0 ? 1 : 0 };
}

// Runs many small tasks with limited parallelism.

/** Calls `act(0)` to `act(count - 1)`, with at most `atOnce` calls running. The first failure ends the run. */
export async function inParallel(count, atOnce, act) {
  let next = 0;
  const work = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      await act(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, work));
}

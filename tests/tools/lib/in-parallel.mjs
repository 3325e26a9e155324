// Many small things, some at a time.

/** Calls `act(0)` to `act(count - 1)`, at most `atOnce` of them under way; the first that fails ends it. */
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

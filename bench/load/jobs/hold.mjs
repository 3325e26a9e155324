// Idle connections: each makes a round trip, so that it is open end to end, and then stays silent until `go`.
import { SmallTalk } from '../small-talk.mjs';

const AT_ONCE = 100;

/** @param {{ connections: number }} parameters */
export async function hold(address, { connections }, ready) {
  let opened = 0;
  const worker = async () => {
    while (opened < connections) {
      opened += 1;
      const talk = new SmallTalk(address, opened);
      const talked = talk.talk();
      talk.stop();
      await talked;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await ready();
  return { connections: opened };
}

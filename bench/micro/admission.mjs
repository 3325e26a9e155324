// Measures admission: the cost to admit a connection and to release its slot while others are held, and the additional cost of its fair
// share.
import { Admission } from '@tunnel/rules/admission';
import { FairShare } from '@tunnel/rules/rate';

const HELD = [1, 10_000];
const NETWORKS = 1000;
const HANDSHAKES_PER_SECOND = 50;

const networkAt = (index) => `10.0.${index >> 8}.${index & 255}`;
const NAMES = Array.from({ length: NETWORKS }, (_, index) => networkAt(index));

function admissionWith(held) {
  const limits = { visitors: 100_000, control: 10_000, api: 1000 };
  const admission = new Admission({ limits, perNetwork: 5000, handshakesPerSecond: HANDSHAKES_PER_SECOND });
  for (let index = 0; index < held; index++) admission.enter('https', NAMES[index % NETWORKS], index);
  return admission;
}

/** Returns an operation: a connection enters, begins its handshake, and leaves. `lateMs` is the delay of the event loop. */
const visits = (held, lateMs) => {
  let admission;
  let nowMs = 0;
  return (times) => {
    admission ??= admissionWith(held);
    for (let done = 0; done < times; done++) {
      nowMs += 1;
      const entry = admission.enter('https', NAMES[nowMs % NETWORKS], nowMs);
      if (entry.kind !== 'admitted') throw new Error(entry.reason);
      // A second passes between two connections of a network, so that each gets a handshake turn.
      if (!admission.handshakeBegins(entry.ticket, lateMs, nowMs)) throw new Error('no turn');
      admission.leave(entry.ticket);
    }
  };
};

const sharing = (times) => {
  const shares = new FairShare({ limit: 100_000, perHolder: 25_000 });
  for (const name of NAMES) shares.take(name);
  for (let done = 0; done < times; done++) {
    const name = NAMES[done % NETWORKS];
    if (shares.refusal(name) !== null) throw new Error('refused');
    shares.take(name);
    shares.give(name);
  }
};

export const admission = [
  ...HELD.map((held) => ({
    name: `admission: in and out beside ${held.toLocaleString('en-US')}`,
    run: visits(held, 0),
  })),
  { name: 'admission: the same while the event loop is late', run: visits(10_000, 100) },
  { name: 'admission: one place of a share, taken and given', run: sharing },
];

// Making something once by an idempotency key. For a day the processor answers a key that it knows with the object of then, which
// may have been deleted since: then the key is followed by another one, which everybody who comes this way finds too.
import type { Stripe } from 'stripe';

const MOST_TURNS = 10;

export const createAnew = async <T extends { readonly id: string }>(
  key: string,
  create: (idempotencyKey: string) => Promise<Stripe.Response<T>>,
  isPresent: (made: T) => Promise<boolean>,
): Promise<T> => {
  let idempotencyKey = key;
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const made = await create(idempotencyKey);
    // One that was made just now is not looked for: not to see it yet would make a second one.
    const isOld = made.lastResponse.headers['idempotent-replayed'] === 'true';
    if (!isOld || (await isPresent(made))) return made;
    idempotencyKey = `${key}:after:${made.id}`;
  }
  throw new Error(`${key} was made and deleted too often`);
};

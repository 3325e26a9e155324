// Cards of the stand-in. What each will do is written on it.
import { randomId } from '@tunnel/runtime';
import type { CardKind, SimPaymentMethod } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';

/** The processor's own test numbers end like this. */
const LAST_FOUR: Readonly<Record<CardKind, string>> = { good: '4242', declined: '0002', fails_later: '0341' };
const YEARS_VALID = 4;

export const attachCard = (
  world: SimWorld,
  customer: string,
  kind: Exclude<CardKind, 'declined'>,
): SimPaymentMethod => {
  const method = world.state.put('payment_methods', {
    id: randomId('pm'),
    object: 'payment_method',
    livemode: false,
    created: world.now(),
    type: 'card',
    customer,
    card: {
      brand: 'visa',
      last4: LAST_FOUR[kind],
      exp_month: 12,
      exp_year: new Date(world.now() * 1000).getUTCFullYear() + YEARS_VALID,
    },
    metadata: { simulated: kind },
  });
  world.emit('payment_method.attached', method);
  return method;
};

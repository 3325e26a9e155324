// Setup intents: the way to a card on file. A browser would confirm one with the processor; here a control call does.
import { randomId, randomToken } from '@tunnel/runtime';
import * as z from 'zod';
import { flag, text } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest, cardDeclined, noSuch, type SimError } from '../sim-error.ts';
import type { CardKind, SimSetupIntent } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';
import { customerOf } from './customers.ts';
import { attachCard } from './payment-methods.ts';

const creating = z.strictObject({
  customer: text(),
  usage: z.enum(['off_session', 'on_session']),
  automatic_payment_methods: z.strictObject({ enabled: flag(), allow_redirects: z.enum(['always', 'never']) }),
});

const create = (world: SimWorld, { customer, usage }: z.output<typeof creating>): SimSetupIntent => {
  customerOf(world, customer);
  const id = randomId('seti');
  return world.state.put('setup_intents', {
    id,
    object: 'setup_intent',
    livemode: false,
    created: world.now(),
    client_secret: `${id}_secret_${randomToken(18).replaceAll(/[-_]/g, 'x')}`,
    customer,
    status: 'requires_payment_method',
    usage,
    payment_method: null,
    last_setup_error: null,
  });
};

export const setupIntentRoutes: readonly Route[] = [route('POST', '/v1/setup_intents', creating, create)];

/** Found by its id or by its whole client secret. */
export const setupIntentOf = (world: SimWorld, reference: string): SimSetupIntent => {
  const [id = ''] = reference.split('_secret_');
  const intent = world.state.get('setup_intents', id);
  if (intent === undefined || (reference !== id && reference !== intent.client_secret)) {
    throw noSuch('setupintent', id, 'intent');
  }
  return intent;
};

export interface Confirmed {
  readonly intent: SimSetupIntent;
  /** The card was declined: the intent waits for another one. */
  readonly refusal: SimError | null;
}

/** A refusal is given back, not thrown: that it was tried is kept. */
export const confirmSetupIntent = (world: SimWorld, reference: string, card: CardKind): Confirmed => {
  const intent = setupIntentOf(world, reference);
  if (intent.status === 'succeeded') {
    throw badRequest('You cannot confirm this SetupIntent because it has already succeeded.', {
      code: 'setup_intent_unexpected_state',
    });
  }
  if (card === 'declined') {
    const refusal = cardDeclined();
    const failed = world.state.put('setup_intents', { ...intent, last_setup_error: refusal.body });
    world.emit('setup_intent.setup_failed', failed);
    return { intent: failed, refusal };
  }
  const method = attachCard(world, intent.customer, card);
  const done = world.state.put('setup_intents', {
    ...intent,
    status: 'succeeded',
    payment_method: method.id,
    last_setup_error: null,
  });
  world.emit('setup_intent.succeeded', done);
  return { intent: done, refusal: null };
};

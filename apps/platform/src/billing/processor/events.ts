// Events that the processor sends: believed when they carry its signature over the very bytes that came, made not long ago.
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import * as z from 'zod';
import type { ProcessorEvent } from './processor.ts';

/** What the database can hold. */
const name = z.string().regex(/^[\x20-\x7e]{1,255}$/);

const eventShape = z.object({
  id: name,
  type: name,
  created: z.number(),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
});

export const readEvent = (rawBody: Uint8Array | string, signature: string, secret: Secret): ProcessorEvent => {
  const event = eventShape.safeParse(signedValue(rawBody, signature, secret));
  if (!event.success) throw badSignature('not a valid event');
  const { id, type, created, data } = event.data;
  return { id, type, customerId: customerOf(data.object), createdAt: created * 1000 };
};

const signedValue = (rawBody: Uint8Array | string, signature: string, secret: Secret): unknown => {
  try {
    return Stripe.webhooks.constructEvent(textOf(rawBody), signature, secret.reveal());
  } catch (error) {
    throw badSignature(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
  }
};

/** The SDK would read bytes that are no UTF-8 as others, and so sign what never came. */
const textOf = (rawBody: Uint8Array | string): string =>
  typeof rawBody === 'string' ? rawBody : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(rawBody);

const badSignature = (internal: string): Fault => new Fault('WEBHOOK_SIGNATURE', {}, { internal });

const customerOf = (object: Record<string, unknown>): string | null => {
  const reference = object['object'] === 'customer' ? object['id'] : object['customer'];
  const expanded = z.object({ id: name }).safeParse(typeof reference === 'string' ? { id: reference } : reference);
  return expanded.success ? expanded.data.id : null;
};

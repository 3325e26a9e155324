// Verifies webhook events from the payment processor: an event must carry a recent signature over exactly the received bytes.
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import * as z from 'zod';
import type { ProcessorEvent } from './processor.ts';

/** Names that the database can store: printable ASCII, at most 255 characters. */
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

/**
 * Decodes the body, and rejects invalid UTF-8. The SDK would replace invalid bytes and verify the signature over a text that was never
 * sent.
 */
const textOf = (rawBody: Uint8Array | string): string =>
  typeof rawBody === 'string' ? rawBody : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(rawBody);

const badSignature = (internal: string): Fault => new Fault('WEBHOOK_SIGNATURE', {}, { internal });

const customerOf = (object: Record<string, unknown>): string | null => {
  const reference = object['object'] === 'customer' ? object['id'] : object['customer'];
  const expanded = z.object({ id: name }).safeParse(typeof reference === 'string' ? { id: reference } : reference);
  return expanded.success ? expanded.data.id : null;
};

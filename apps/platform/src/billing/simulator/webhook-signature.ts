// The processor's signature of a webhook: over the time and the very bytes of the body.
import { createHmac } from 'node:crypto';
import type { Secret } from '@tunnel/runtime';

export const signWebhook = (body: string, secret: Secret, atSecs: number): string => {
  const mac = createHmac('sha256', secret.reveal()).update(`${atSecs}.${body}`, 'utf8').digest('hex');
  return `t=${atSecs},v1=${mac}`;
};

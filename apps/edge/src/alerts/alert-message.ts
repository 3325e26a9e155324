// Body of an alert, and headers by which the receiver can verify the sender (Standard Webhooks).
import type { Secret } from '@tunnel/runtime';
import { Webhook } from 'standardwebhooks';
import type { TellEnd } from './last-alerts.ts';

/** Alert that a group has no healthy member left. */
export interface ZeroHealthyAlert {
  /** Protocol as shown to users: https groups are shown as http. */
  readonly protocol: string;
  readonly label: string;
  readonly groupName: string;
  readonly keyHashShort: string;
  readonly memberCount: number;
  /** Time when the group lost its last healthy member, in milliseconds since the epoch. */
  readonly at: number;
  /** Key of the account that owns the last healthy member. */
  readonly account: string;
  readonly groupId: string;
  /** Alert URLs of the group's members. */
  readonly tenantUrls: readonly string[];
  /** Called once per result of the alert. Undefined if no listener needs the results. */
  readonly onEnd?: TellEnd;
}

export interface AlertMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface AlertStamp {
  readonly id: string;
  readonly now: number;
  readonly secret: Secret;
  readonly userAgent: string;
  readonly regionId: string;
}

/**
 * Composes the message for all destinations of an alert. The id is the same for all, so that a receiver with two URLs can detect the
 * duplicate.
 */
export const composeAlert = (alert: ZeroHealthyAlert, stamp: AlertStamp): AlertMessage => {
  const body = JSON.stringify({
    event: 'group_zero_healthy',
    region_id: stamp.regionId,
    protocol: alert.protocol,
    label: alert.label,
    group_name: alert.groupName,
    key_hash_short: alert.keyHashShort,
    member_count: alert.memberCount,
    at: new Date(alert.at).toISOString().replace(/Z$/, '+00:00'),
  });
  const headers = { 'content-type': 'application/json', 'user-agent': stamp.userAgent, ...signatureOf(body, stamp) };
  return { headers, body: Buffer.from(body) };
};

const signatureOf = (body: string, { id, now, secret }: AlertStamp): Record<string, string> => {
  const key = keyOf(secret.reveal());
  if (key.length === 0) return {};
  const signature = new Webhook(key, { format: 'raw' }).sign(id, new Date(now), body);
  return { 'webhook-id': id, 'webhook-timestamp': String(Math.floor(now / 1000)), 'webhook-signature': signature };
};

/**
 * Decodes a signing secret. Secrets in the format of the standard are `whsec_` and base64, with or without padding. Any other text is
 * used as is.
 */
const keyOf = (secret: string): Buffer => {
  const [, encoded] = /^whsec_([A-Za-z0-9+/_-]+={0,2})$/.exec(secret) ?? [];
  return encoded === undefined ? Buffer.from(secret, 'utf8') : Buffer.from(encoded, 'base64');
};

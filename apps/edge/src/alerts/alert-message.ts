// What an alert says, and the headers that let its receiver tell who said it (Standard Webhooks).
import type { Secret } from '@tunnel/runtime';
import { Webhook } from 'standardwebhooks';
import type { TellEnd } from './last-alerts.ts';

/** A group has no healthy member left. */
export interface ZeroHealthyAlert {
  /** As it is shown: http for https. */
  readonly protocol: string;
  readonly label: string;
  readonly groupName: string;
  readonly keyHashShort: string;
  readonly memberCount: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Whose member was the last healthy one: as a key of maps. */
  readonly account: string;
  readonly groupId: string;
  /** Of the group's members. */
  readonly tenantUrls: readonly string[];
  /** Hears of each end, once; absent: nobody asks. */
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

/** One for all destinations of an alert: a receiver that stands behind two URLs knows it again by its id. */
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

/** `whsec_` and base64, as the standard writes secrets, with or without its padding; anything else is taken as it is. */
const keyOf = (secret: string): Buffer => {
  const [, encoded] = /^whsec_([A-Za-z0-9+/_-]+={0,2})$/.exec(secret) ?? [];
  return encoded === undefined ? Buffer.from(secret, 'utf8') : Buffer.from(encoded, 'base64');
};

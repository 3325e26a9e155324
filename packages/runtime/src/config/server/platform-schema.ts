// [platform] and its tables: the API, mail, billing, limits and plans.
import * as z from 'zod';
import {
  addressList,
  filledText,
  flag,
  listenPort,
  oneOf,
  secretText,
  secretUrl,
  section,
  serviceUrl,
  table,
  url,
  wholeNumber,
} from '../values.ts';

const MOST_CENTS = 1_000_000_000;

/** Plans that exist without being written down; the file's plans are laid over them. */
export const BUILT_IN_PLANS = {
  free: { tunnel_limit: 3, allow_custom_subdomains: true, monthly_minimum_cents: 0 },
  payg: { allow_custom_subdomains: true, monthly_minimum_cents: 300, price_cents_per_gb: 10 },
} as const;

const plan = table({
  /** Absent: no limit. */
  tunnel_limit: wholeNumber(0, 1_000_000).optional(),
  allow_custom_subdomains: flag().default(true),
  monthly_minimum_cents: wholeNumber(0, MOST_CENTS).default(0),
  price_cents_per_gb: wholeNumber(0, MOST_CENTS).default(0),
});

const PLAN_NAME = 'a plan name of a-z, 0-9, - and _';
const planName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,49}$/, { error: PLAN_NAME });

export const platformSchema = section({
  host: filledText().default('127.0.0.1'),
  port: listenPort().default(8080),
  public_url: url({ orEmpty: false }).default('http://localhost:8080'),
  trusted_proxies: addressList().default([]),
  mail: section({
    transport: oneOf(['file', 'smtp']).default('file'),
    smtp_url: secretUrl(/^smtps?:\/\//i, 'smtp://user:password@host:587').prefault(''),
    from: filledText().default('Tunnel <no-reply@localhost>'),
  }),
  billing: section({
    processor: oneOf(['simulator', 'stripe']).default('simulator'),
    simulator_port: listenPort().default(0),
    stripe_secret_key: secretText().prefault(''),
    stripe_webhook_secret: secretText().prefault(''),
    /** Elsewhere only for a stand-in. */
    stripe_api_url: serviceUrl().default('https://api.stripe.com'),
  }),
  limits: section({
    auth_per_minute: wholeNumber(1, 1_000_000).default(30),
    auth_per_account_per_minute: wholeNumber(1, 1_000_000).default(10),
  }),
  plans: z
    .record(planName, plan, { error: (issue) => (issue.code === 'invalid_key' ? PLAN_NAME : 'a table') })
    .prefault({}),
});

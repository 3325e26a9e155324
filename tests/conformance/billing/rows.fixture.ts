// The billing rows of the specification in their order, and the names of their tests. rows.test.ts fails if a row has no test.

import { namesOfRows, numbered } from '../numbered.fixture.ts';

export const ROWS = {
  Billing: numbered([
    'GET /billing: 200 BillingStatus; 401',
    'POST /billing/subscribe: 200 {status, plan, payment_subscription_id}; needs a payment method on file; 400; 401',
    'POST /billing/setup-intent: 200 {client_secret}; 401',
    'POST /billing/portal: return_url; 200 {url}; 401',
    'GET /billing/invoices: 200 {invoices}, raw, empty if none; 401',
    'PATCH /billing/spend-cap: integer or null, min 0; null removes the cap; 200 {spend_cap_cents}; 400; 401',
  ]),
  BillingStatus: numbered([
    'billing_model: string',
    'plan_name: string',
    'estimated_mtd_cents: integer, month-to-date estimate in cents',
    'spend_cap_cents: integer or null, null means no cap',
    'subscription_status: string or null',
    'current_period_end: string (date-time) or null',
    'payment_customer_id: string or null, at the payment processor',
    'has_payment_method: boolean',
    'allow_custom_subdomains: boolean',
    'monthly_minimum_cents: integer',
  ]),
  Limits: numbered([
    'spend_cap_cents: integer or null, minimum 0',
    'monthly minimum of the subscription: 3 USD, credited toward usage',
  ]),
  Contract: numbered([
    'POSTs without a body ignore body and content type: subscribe, setup-intent',
    'price: floor(bytes of the month / 10^8) cents, one rounding; due is the larger of minimum and usage',
    'price at the processor: fixed 300 cents, and metered with the first 30·10^9 bytes for nothing, from the first of the month UTC',
    'estimated_mtd_cents: the calendar month UTC so far; payg: the larger of minimum and usage; free: 0',
    'spend cap: payg only, else 400',
    'spend cap: missing field, fraction, negative: 400; only an explicit null removes it',
    'spend cap: compared with metered usage, not with the minimum; 0 allows none',
    'spend cap reached: new tunnels are refused with its text, live ones closed with it within 60 s; exit 6, no loop',
    'spend cap raised or removed: allowed again at once',
    'spend cap: mail at 80 % and 100 %, once each a month',
    'billing_model: free or payg; subscription_status: null, active, past_due, canceled',
    'past_due: 7 days of grace, then new tunnels are refused and live ones closed within 60 s as at a reached cap',
    'canceled: plan free at the period’s end, then what is over its limit is closed within 60 s, newest first',
    'POST /billing/subscribe: 400 without a payment method; already subscribed: 200 with the current state, same id',
    'POST /billing/portal: return_url http or https, else 400',
    'simulator: POST /_sim/setup_intents/{id}/confirm',
    'simulator: POST /_sim/clock {"advance_secs":n}',
    'simulator: POST /_sim/webhooks {"mode":"normal|late|twice|shuffle"}',
    'simulator: its page lets a person do the same',
    'ours: POST /billing/webhook, proven by its signature',
    'Idempotency-Key is honoured on the POSTs',
    'ours: GET /billing/usage, what the estimate is made of; without a subscription its prices; 401',
  ]),
} as const;

export const row = namesOfRows(ROWS);

// Objects of the simulator, with the processor's fields that the platform and its users need. Times are in seconds.

interface Base {
  readonly id: string;
  readonly livemode: false;
  readonly created: number;
}

type Metadata = Readonly<Record<string, string>>;

export interface Customer extends Base {
  readonly object: 'customer';
  readonly email: string;
  readonly name: string | null;
  readonly metadata: Metadata;
  readonly invoice_settings: { readonly default_payment_method: string | null };
  /** The simulator's test clock. Undefined for customers created by older versions. */
  readonly test_clock?: string;
}

export interface SetupIntent extends Base {
  readonly object: 'setup_intent';
  readonly client_secret: string;
  readonly customer: string;
  readonly status: 'requires_payment_method' | 'succeeded';
  readonly usage: string;
  readonly payment_method: string | null;
  readonly last_setup_error: object | null;
}

export type CardKind = 'good' | 'declined' | 'fails_later';

export interface PaymentMethod extends Base {
  readonly object: 'payment_method';
  readonly type: 'card';
  readonly customer: string;
  readonly card: {
    readonly brand: string;
    readonly last4: string;
    readonly exp_month: number;
    readonly exp_year: number;
  };
  readonly metadata: { readonly simulated: CardKind };
}

export interface Meter extends Base {
  readonly object: 'billing.meter';
  readonly display_name: string;
  readonly event_name: string;
  readonly status: 'active';
  readonly default_aggregation: { readonly formula: string };
  readonly customer_mapping: { readonly type: string; readonly event_payload_key: string };
  readonly value_settings: { readonly event_payload_key: string };
}

export interface Tier {
  /** Usage up to which the price tier applies. Null for the last tier, which has no limit. */
  readonly up_to: number | null;
  readonly unit_amount_decimal: string;
  /** Fixed amount charged once if usage reaches the price tier. */
  readonly flat_amount_decimal: string | null;
}

export interface Price extends Base {
  readonly object: 'price';
  readonly active: true;
  readonly currency: string;
  readonly lookup_key: string;
  readonly product: string;
  readonly type: 'recurring';
  readonly recurring: {
    readonly interval: 'month';
    readonly interval_count: 1;
    readonly usage_type: 'licensed' | 'metered';
    readonly meter: string | null;
  };
  readonly billing_scheme: 'per_unit' | 'tiered';
  readonly tiers_mode: 'graduated' | null;
  readonly tiers: readonly Tier[] | null;
  readonly unit_amount_decimal: string | null;
  readonly metadata: { readonly product_name: string };
}

export interface SubscriptionItem extends Base {
  readonly object: 'subscription_item';
  readonly subscription: string;
  readonly price: Price;
  readonly quantity?: 1;
  readonly current_period_start: number;
  readonly current_period_end: number;
}

export interface List<T> {
  readonly object: 'list';
  readonly url: string;
  readonly has_more: boolean;
  readonly data: readonly T[];
}

export interface Subscription extends Base {
  readonly object: 'subscription';
  readonly customer: string;
  readonly status: 'active' | 'past_due' | 'canceled';
  readonly start_date: number;
  readonly billing_cycle_anchor: number;
  readonly cancel_at: number | null;
  readonly cancel_at_period_end: boolean;
  readonly canceled_at: number | null;
  readonly ended_at: number | null;
  readonly currency: string;
  readonly collection_method: 'charge_automatically';
  readonly default_payment_method: null;
  readonly items: List<SubscriptionItem>;
  readonly latest_invoice: string | null;
  readonly metadata: Metadata;
}

export interface InvoiceItem extends Omit<Base, 'created'> {
  readonly object: 'invoiceitem';
  readonly date: number;
  readonly customer: string;
  readonly parent: { readonly type: 'subscription_details'; readonly subscription_details: { subscription: string } };
  readonly amount: number;
  readonly currency: string;
  readonly description: string;
  readonly metadata: Metadata;
  /** Invoice with this item. Null while the item waits for the next invoice. */
  readonly invoice: string | null;
}

export interface InvoiceLine {
  readonly id: string;
  readonly object: 'line_item';
  readonly amount: number;
  readonly currency: string;
  readonly description: string;
  readonly period: { readonly start: number; readonly end: number };
  readonly quantity: number;
  readonly pricing: {
    readonly type: 'price_details';
    readonly price_details: { price: string; product: string };
  } | null;
  readonly subscription: string;
}

export interface Invoice extends Base {
  readonly object: 'invoice';
  readonly customer: string;
  readonly customer_email: string | null;
  readonly currency: string;
  readonly status: 'draft' | 'open' | 'paid';
  readonly billing_reason: 'subscription_cycle';
  readonly collection_method: 'charge_automatically';
  readonly number: string | null;
  readonly period_start: number;
  readonly period_end: number;
  readonly lines: List<InvoiceLine>;
  readonly subtotal: number;
  readonly total: number;
  readonly amount_due: number;
  readonly amount_paid: number;
  readonly amount_remaining: number;
  readonly attempt_count: number;
  readonly attempted: boolean;
  readonly next_payment_attempt: number | null;
  readonly parent: {
    readonly type: 'subscription_details';
    readonly subscription_details: { readonly subscription: string };
  };
  readonly status_transitions: { readonly finalized_at: number | null; readonly paid_at: number | null };
  readonly hosted_invoice_url: string | null;
  readonly invoice_pdf: null;
}

export interface PortalSession extends Base {
  readonly object: 'billing_portal.session';
  readonly customer: string;
  readonly return_url: string;
  readonly url: string;
  /** Target after a card was added. Null or undefined: the visitor stays in the portal. */
  readonly after_card?: string | null;
}

interface MeterEvent {
  /** The identifier, with a numeric suffix if it was reused after the processor forgot it. */
  readonly id: string;
  readonly customer: string;
  readonly value: number;
  readonly timestamp: number;
  /** Time that decides which invoice contains the reported usage. */
  readonly billed_at: number;
  readonly received_ms: number;
}

/** A webhook event that waits for delivery to the platform. */
export interface WebhookEvent {
  readonly id: string;
  readonly queued_ms: number;
  readonly payload: object;
}

/** Response to a POST, kept for a day to answer repeated calls. */
interface KeptAnswer {
  /** The idempotency key of the POST. */
  readonly id: string;
  readonly request: string;
  readonly status: number;
  readonly body: object;
  readonly answered_ms: number;
}

type WebhookMode = 'normal' | 'late' | 'twice' | 'shuffle';

export interface Settings {
  readonly id: 'settings';
  readonly offset_ms: number;
  readonly webhook_mode: WebhookMode;
}

export interface Tables {
  readonly customers: Customer;
  readonly setup_intents: SetupIntent;
  readonly payment_methods: PaymentMethod;
  readonly meters: Meter;
  readonly prices: Price;
  readonly subscriptions: Subscription;
  readonly invoice_items: InvoiceItem;
  readonly invoices: Invoice;
  readonly portal_sessions: PortalSession;
  readonly meter_events: MeterEvent;
  readonly events: WebhookEvent;
  readonly answers: KeptAnswer;
  readonly settings: Settings;
}

export type TableName = keyof Tables;

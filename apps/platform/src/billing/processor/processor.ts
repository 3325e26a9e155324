// What the platform asks of a payment processor. One implementation, the official SDK: it speaks to the processor or to the simulator.
// Times are ms since the epoch, money is in cents, usage is in bytes.

export interface SubscriptionFacts {
  readonly id: string;
  readonly status: 'active' | 'past_due' | 'canceled';
  /** Of one that is canceled: it did. */
  readonly cancelsAtPeriodEnd: boolean;
  readonly periodEnd: number | null;
  readonly startedAt: number;
}

/** As people know it. */
export interface CardFacts {
  readonly brand: string;
  readonly last4: string;
}

export interface CustomerFacts {
  /** Where it sends invoices and receipts. */
  readonly email: string | null;
  readonly defaultPaymentMethod: string | null;
  readonly paymentMethods: readonly string[];
  /** What is charged: the default, else the first. null: there is none, or it is no card. */
  readonly card: CardFacts | null;
  /** The newest that lives, else the newest that has ended. */
  readonly subscription: SubscriptionFacts | null;
  /** Of a customer past due on a clock of its own: the simulator's, or a test clock. Absent: it goes as ours does. */
  readonly clock?: {
    readonly now: number;
    /** By that clock; null: no invoice is open. */
    readonly unpaidSince: number | null;
  };
}

export interface ProcessorEvent {
  readonly id: string;
  readonly type: string;
  readonly customerId: string | null;
  readonly createdAt: number;
}

export interface CustomerOrder {
  readonly userId: string;
  readonly email: string;
  readonly name: string | null;
}

export interface SubscribeOrder {
  readonly customerId: string;
  readonly idempotencyKey: string;
  readonly userId: string;
}

export interface FinalMinimumOrder {
  readonly customerId: string;
  readonly subscriptionId: string;
  readonly periodEnd: number;
  readonly wanted: boolean;
  /** Then it goes on the draft of the last invoice; without effect once that is final. */
  readonly hasEnded: boolean;
}

export interface UsageEvent {
  /** The same event is counted once, however often it is sent. */
  readonly identifier: string;
  readonly customerId: string;
  readonly bytes: number;
  readonly at: number;
}

export interface UsageRange {
  readonly customerId: string;
  readonly from: number;
  readonly to: number;
}

export interface PortalOrder {
  readonly customerId: string;
  readonly returnUrl: string;
  /** A card is all that is wanted: the portal leads back by itself when it has one. Absent: the whole portal. */
  readonly flow?: 'payment_method' | undefined;
}

/**
 * Every call throws BILLING_PROCESSOR_AWAY when the processor is not reached, is too slow or answers 429 or 5xx, and
 * BILLING_PROCESSOR_REFUSED when it refuses what it was asked.
 */
export interface Processor {
  /** The same customer for the same user, however often it is called. */
  ensureCustomer(user: CustomerOrder): Promise<string>;
  createSetupIntent(customerId: string, idempotencyKey: string): Promise<{ readonly clientSecret: string }>;
  /** null: it is unknown there, or was deleted. */
  readCustomer(customerId: string): Promise<CustomerFacts | null>;
  /** Where it sends invoices and receipts from now on. */
  setEmail(customerId: string, email: string): Promise<void>;
  /** As the default of what is charged. */
  usePaymentMethod(customerId: string, paymentMethodId: string): Promise<void>;
  /** A subscription of the customer that lives is given back as it is. */
  subscribe(order: SubscribeOrder): Promise<SubscriptionFacts>;
  /** One that was set to end goes on. */
  keepSubscription(subscriptionId: string): Promise<SubscriptionFacts>;
  /** All that live end now, each with a last invoice of what was reported and of items that wait. */
  endSubscriptions(customerId: string): Promise<void>;
  /** The last invoice lacks the fixed price, so the minimum is put on it; and taken off again when it is not wanted. */
  setFinalMinimum(order: FinalMinimumOrder): Promise<void>;
  reportUsage(event: UsageEvent): Promise<void>;
  /** What was reported with a time of `from` or later, before `to`; both to the whole minute. */
  meteredBytes(range: UsageRange): Promise<number>;
  openPortal(order: PortalOrder): Promise<string>;
  /** As the processor has them, newest first, at most 100. */
  invoices(customerId: string): Promise<readonly Record<string, unknown>[]>;
  /** The body must be the bytes that came: WEBHOOK_SIGNATURE when they are not signed by the processor, or too long ago. */
  readEvent(rawBody: Uint8Array | string, signature: string): Promise<ProcessorEvent>;
}

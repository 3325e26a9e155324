// That a person was about to subscribe when they left for the payment processor's page, so that the page can finish it when they are
// back. Kept in this tab, never in the address: a link must not be able to subscribe anybody.

const STORED_AS = 'tunnel.subscribing';

/** Longer than anyone types a card. */
const LASTS_MS = 30 * 60_000;

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export const rememberSubscribing = (userId: string, now: number, store: () => Store = tabStore): void => {
  try {
    store().setItem(STORED_AS, JSON.stringify([userId, now]));
  } catch {
    // A browser that keeps nothing: they press once more.
  }
};

/** Once: what is taken is gone. Of another account, or of long ago: no. */
export const takeSubscribing = (userId: string, now: number, store: () => Store = tabStore): boolean => {
  try {
    const kept: unknown = JSON.parse(store().getItem(STORED_AS) ?? 'null');
    store().removeItem(STORED_AS);
    if (!Array.isArray(kept)) return false;
    const [owner, at] = kept as unknown[];
    return owner === userId && typeof at === 'number' && now >= at && now - at < LASTS_MS;
  } catch {
    return false;
  }
};

const tabStore = (): Store => sessionStorage;

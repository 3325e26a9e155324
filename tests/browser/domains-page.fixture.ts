// Helpers for the pages of names, ports and custom domains.
import type { Reservation } from '@tunnel/contract';
import type { Locator, Page } from 'playwright-core';
import { Account } from './account.fixture.ts';
import { DomainsApi, domainsInAllStates } from './own-domains.fixture.ts';
import type { Profile } from './profile.fixture.ts';

export const cardOf = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true });

/** Returns the state of a reserved name or port from the API. */
export const stateOf = async (account: Account, label: string): Promise<string | undefined> =>
  (await account.get<Reservation[]>('/reservations')).find((one) => one.label === label)?.state;

/** Opens the domains page of a new account with the given custom domains. */
export const openList = async (profile: Profile, stack: Account['stack'], list = domainsInAllStates()) => {
  const account = await Account.signUp(stack, 'own');
  await profile.logIn(account.email);
  const api = await DomainsApi.in(profile.context, list);
  return { api, page: await profile.tab('/domains') };
};

// Sessions of the hosted portal: a page of the stand-in for one customer.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { text } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest } from '../sim-error.ts';
import type { SimPortalSession } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';
import { customerOf } from './customers.ts';

const creating = z.strictObject({ customer: text(), return_url: text() });

/** The address that the page is at may be another one after a restart. */
export const portalRoutes = (baseUrl: () => string): readonly Route[] => [
  route('POST', '/v1/billing_portal/sessions', creating, (world: SimWorld, params): SimPortalSession => {
    customerOf(world, params.customer);
    if (!/^https?:\/\//i.test(params.return_url) || !URL.canParse(params.return_url)) {
      throw badRequest('Not a valid URL', { code: 'url_invalid', param: 'return_url' });
    }
    const id = randomId('bps');
    return world.state.put('portal_sessions', {
      id,
      object: 'billing_portal.session',
      livemode: false,
      created: world.now(),
      ...params,
      url: `${baseUrl()}/portal/${id}`,
    });
  }),
];

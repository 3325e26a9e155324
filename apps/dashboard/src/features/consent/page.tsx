// Consent page for an app that requests access to the account. Shows the app, the redirect target and the permissions, and offers to
// allow or deny. Previous answers are not remembered.
import { queryOptions, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { OauthDecision, PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { useApi } from '../../api/app-context.tsx';
import { webAddress } from '../../shared/page-url.ts';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { buttonClass } from '../../ui/button.tsx';
import { SkeletonLines } from '../../ui/card.tsx';
import { isFault } from '../../ui/problem.tsx';
import { AuthCard } from '../auth/layout.tsx';
import { Question } from './question.tsx';

const route = getRouteApi('/consent-frame/consent');

export const ConsentPage = () => {
  const { request = '' } = route.useSearch();
  return request === '' ? <Over /> : <Request key={request} id={request} />;
};

const Request = ({ id }: { readonly id: string }) => {
  const api = useApi();
  const deciding = useDecision(api, id);
  const { isIdle, isError, data: leftFor, variables } = deciding;
  // An answer ends the request. Refetching an answered request would show the message for an expired request.
  const asked = useQuery({ ...requestQuery(api, id), enabled: isIdle || isError });
  if (leftFor !== undefined) return <Leaving to={leftFor} isAllowed={variables.allow} />;
  if (isOver(asked.error) || isOver(deciding.error)) return <Over />;
  return (
    <Loaded query={asked} title="Couldn't load this request" pending={<Pending />}>
      {(request) => (
        <Question
          request={request}
          answer={variables !== undefined && deciding.isPending ? variables.allow : null}
          error={deciding.error}
          onAnswer={(decision) => deciding.mutate(decision)}
        />
      )}
    </Loaded>
  );
};

/**
 * Refresh interval of the access request, which can expire while the page is open. Only the platform decides about expiry, because this
 * computer's clock may be wrong.
 */
const REFRESH_MS = 30_000;

const requestQuery = (api: PlatformClient, id: string) =>
  queryOptions({
    queryKey: ['oauth-request', id],
    queryFn: () => api.oauthRequest(id),
    staleTime: 0,
    gcTime: 0,
    refetchInterval: REFRESH_MS,
  });

/**
 * Sends the decision and goes to the app's redirect URL. The URL replaces the history entry, so that the Back button does not return to
 * an answered question.
 */
const useDecision = (api: PlatformClient, id: string) =>
  useMutation({
    mutationFn: async (decision: OauthDecision) => {
      const { redirect_to } = await api.decideOauthRequest(id, decision);
      const address = webAddress(redirect_to);
      if (address === null) throw new Fault('INTERNAL', {}, { message: "the app's redirect URL is not valid" });
      return address;
    },
    onSuccess: (address) => window.location.replace(address),
    gcTime: 0,
  });

const isOver = (error: unknown): boolean => isFault(error, 'OAUTH_REQUEST_UNKNOWN');

const Pending = () => (
  <AuthCard title="Connect an app">
    <SkeletonLines count={9} />
  </AuthCard>
);

const Over = () => (
  <AuthCard
    title="This request has expired"
    description="The request is too old or was already answered. Go back to the app and connect again."
  >
    <Link to="/" className={buttonClass('secondary', 'medium', 'h-10! w-full')}>
      Go to overview
    </Link>
  </AuthCard>
);

interface LeavingProps {
  readonly to: string;
  readonly isAllowed: boolean;
}

/** Card shown while the browser opens the app's redirect URL. Stays visible if that server does not respond. */
const Leaving = ({ to, isAllowed }: LeavingProps) => (
  <AuthCard
    title={isAllowed ? 'Access allowed' : 'Access denied'}
    description={
      <>
        Taking you back to <span className="wrap-anywhere font-medium text-ink">{new URL(to).host}</span>.
      </>
    }
  >
    <a href={to} className={buttonClass('secondary', 'medium', 'h-10! w-full')}>
      Continue
    </a>
  </AuthCard>
);

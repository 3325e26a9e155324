// The link of a verification mail, for those who come by the dashboard's own address.
import { useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { buttonClass } from '../../ui/button.tsx';
import { Spinner } from '../../ui/icon.tsx';
import { Problem } from '../../ui/problem.tsx';
import { sentence } from '../../ui/problem-text.ts';
import { AuthCard, TextLink, useLinkToken } from './layout.tsx';

const route = getRouteApi('/signed-out/verify');

export const VerifyPage = () => {
  const token = useLinkToken(route.useSearch().token);
  const { data, error } = useVerification(token);
  return (
    <AuthCard
      title="Verify your email"
      below={
        data === undefined && (
          <>
            Already verified? <TextLink to="/login">Log in</TextLink>
          </>
        )
      }
    >
      {data !== undefined && (
        <>
          <Notice tone="good" live>
            {sentence(data.message)}
          </Notice>
          <Link to="/login" className={buttonClass('primary', 'medium', 'h-10! w-full')}>
            Log in
          </Link>
        </>
      )}
      {error !== null && (
        <Problem error={error}>
          <TextLink to="/check-mail">Resend email</TextLink>
        </Problem>
      )}
      {data === undefined && error === null && (
        <p role="status" className="flex items-center gap-2.5 text-muted">
          <Spinner /> Verifying your email
        </p>
      )}
    </AuthCard>
  );
};

/** A token works once: it is sent once, whatever renders how often. */
const useVerification = (token: string) => {
  const api = useApi();
  const verification = useMutation({ mutationFn: () => api.verifyEmail(token) });
  const { mutate } = verification;
  const sent = useRef(false);
  useEffect(() => {
    if (sent.current) return;
    sent.current = true;
    mutate();
  }, [mutate]);
  return verification;
};

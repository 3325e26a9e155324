// The way to the payment processor's own pages: a link for one visit, then a navigation of the whole page.
import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import { Fault } from '@tunnel/errors';
import { useEffect, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { webAddress } from './invoice.ts';

export interface Portal {
  readonly open: () => void;
  readonly isPending: boolean;
  readonly error: UseMutationResult['error'];
}

export const usePortal = (): Portal => {
  const api = useApi();
  const [leaving, setLeaving] = useState(false);
  const opening = useMutation({
    mutationFn: async () => (await api.openPortal({ return_url: here() })).url,
    onSuccess: (url) => {
      setLeaving(true);
      window.location.assign(checked(url));
    },
  });
  // Back by the browser's own button: the page is as it was left.
  useEffect(() => {
    const stay = (): void => setLeaving(false);
    window.addEventListener('pageshow', stay);
    return () => window.removeEventListener('pageshow', stay);
  }, []);
  return {
    open: () => opening.mutate(),
    isPending: opening.isPending || leaving,
    error: opening.error,
  };
};

const here = (): string => window.location.origin + window.location.pathname;

const checked = (url: string): string => {
  const address = webAddress(url);
  if (address === null) throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'its portal has no address' });
  return address;
};

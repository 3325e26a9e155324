// The token of a link from a mail. It leaves the address bar at once: histories and screens keep what is shown there.
import { useRouter } from '@tanstack/react-router';
import { useEffect, useState } from 'react';

export const useLinkToken = (inAddress: string | undefined): string => {
  const [token] = useState(inAddress ?? '');
  const { history } = useRouter();
  useEffect(() => {
    if (inAddress !== undefined) history.replace(history.location.pathname);
  }, [inAddress, history]);
  return token;
};

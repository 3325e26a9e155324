// Requests an email to an address typed by the visitor. The API responds the same way for every address, so that visitors cannot find out
// which addresses have an account. Only the form can notice a typing mistake.
import { useMutation } from '@tanstack/react-query';
import { Fault } from '@tunnel/errors';

const LOOKS_LIKE_EMAIL = /^[^\s@]+@[^\s@]+$/;

export const useAskedMail = <T>(ask: (email: string) => Promise<T>) =>
  useMutation({
    mutationFn: async (email: string) => {
      if (LOOKS_LIKE_EMAIL.test(email.trim())) return ask(email);
      throw new Fault('API_BAD_REQUEST', { reason: "email: enter your account's email address" });
    },
  });

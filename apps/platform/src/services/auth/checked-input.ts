// Addresses and passwords that a person chose, refused with the name of the field and the rule.
import { isAddress, normalizeAddress, problemOfPassword } from '@tunnel/core';
import { Fault } from '@tunnel/errors';

export const newAddress = (email: string): string => {
  const address = normalizeAddress(email);
  if (!isAddress(address)) throw new Fault('API_BAD_REQUEST', { reason: 'email: must be an e-mail address' });
  return address;
};

export const checkNewPassword = (password: string): void => {
  const problem = problemOfPassword(password);
  if (problem !== null) throw new Fault('API_BAD_REQUEST', { reason: `password: ${problem}` });
};

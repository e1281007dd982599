import { AgentError } from '../base/errors.ts';
import { type EtcdAddress, parseEtcdUrl } from './address.ts';

/** A URL that is not dialled. No request was sent. */
export class RefusedUrlError extends AgentError {
  readonly code = 'ETCD_URL_REFUSED';
  readonly url: string;

  constructor(url: string, because: string) {
    super(`${JSON.stringify(url.slice(0, 200))} is not dialled: ${because}`, {
      hint: 'Give the address as https://HOST:PORT. If it came from a member list, look at who added that member.',
    });
    this.url = url;
  }
}

/** The address in this URL. Throws {@link RefusedUrlError}. */
export function addressOf(url: string): EtcdAddress {
  const answer = parseEtcdUrl(url);
  if (answer.kind === 'refused') throw new RefusedUrlError(url, answer.because);
  return answer.address;
}

export { removeMember } from '../../lab/remove-member.ts';

// Looks up the name in each line of its input with the C library that it is compiled with, and prints the addresses, or the error.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void)
{
	char name[256];

	setvbuf(stdout, NULL, _IONBF, 0);
	while (fgets(name, sizeof(name), stdin)) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
		char text[INET6_ADDRSTRLEN], line[4096] = "";

		name[strcspn(name, "\n")] = 0;
		int error = getaddrinfo(name, NULL, &hints, &found);
		if (error) {
			printf("error: %s\n", gai_strerror(error));
			continue;
		}
		for (struct addrinfo *each = found; each; each = each->ai_next) {
			const void *address = each->ai_family == AF_INET
						      ? (void *)&((struct sockaddr_in *)each->ai_addr)->sin_addr
						      : (void *)&((struct sockaddr_in6 *)each->ai_addr)->sin6_addr;
			strcat(strcat(line, " "), inet_ntop(each->ai_family, address, text, sizeof(text)));
		}
		freeaddrinfo(found);
		printf("%s\n", line + 1);
	}
	return 0;
}
